import { componentRequest } from "../../schemas/component-request.ts";
import { cronBodies, cronCount, cronFind } from "../../schemas/cron-request.ts";
import { subscription } from "../../schemas/protocol-schemas.ts";
import {
  assistantCount,
  assistantCreate,
  assistantLatest,
  assistantSearch,
  assistantUpdate,
  assistantVersions,
  historyRead,
  runCreate,
  runsCancel,
  stateRead,
  stateUpdate,
  threadCount,
  threadCreate,
  threadPrune,
  threadSearch,
  threadUpdate,
} from "../../schemas/request-schemas.ts";
import { itemDelete, itemPut, itemSearch, namespaceList } from "../../schemas/store-schemas.ts";
import { Type } from "../../schemas/typebox.ts";

/** Schemas of request bodies by their names in the document: the same schemas that validate requests. */
export const requestBodies = {
  ThreadCreate: threadCreate.schema,
  ThreadUpdate: threadUpdate.schema,
  ThreadSearch: threadSearch.schema,
  ThreadCount: threadCount.schema,
  ThreadPrune: threadPrune.schema,
  StateRead: stateRead.schema,
  StateUpdate: stateUpdate.schema,
  HistoryRead: historyRead.schema,
  RunCreate: runCreate.schema,
  RunsCancel: runsCancel.schema,
  AssistantCreate: assistantCreate.schema,
  AssistantUpdate: assistantUpdate.schema,
  AssistantSearch: assistantSearch.schema,
  AssistantCount: assistantCount.schema,
  AssistantVersions: assistantVersions.schema,
  AssistantLatest: assistantLatest.schema,
  CronCreate: cronBodies.create,
  CronUpdate: cronBodies.update,
  CronSearch: cronFind.schema,
  CronCount: cronCount.schema,
  ItemPut: itemPut.schema,
  ItemDelete: itemDelete.schema,
  ItemSearch: itemSearch.schema,
  NamespaceList: namespaceList.schema,
  Component: componentRequest.schema,
  Subscription: subscription.schema,
  Command: Type.Object({
    id: Type.Integer({ minimum: 0 }),
    method: Type.String(),
    params: Type.Optional(Type.Free()),
  }),
};
