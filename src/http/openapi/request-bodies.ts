import { componentRequestSchema } from "../../schemas/component-request.ts";
import {
  cronBodySchemas,
  cronCountSchema,
  cronPreviewSchema,
  cronSearchSchema,
} from "../../schemas/cron-request.ts";
import { subscriptionSchema } from "../../schemas/protocol-schemas.ts";
import {
  assistantCountSchema,
  assistantCreateSchema,
  assistantLatestSchema,
  assistantSearchSchema,
  assistantUpdateSchema,
  assistantVersionsSchema,
  historyReadSchema,
  runCreateSchema,
  runsCancelSchema,
  runSearchSchema,
  stateReadSchema,
  stateUpdateSchema,
  threadCountSchema,
  threadCreateSchema,
  machineEventSchema,
  threadPruneSchema,
  threadSearchSchema,
  threadUpdateSchema,
} from "../../schemas/request-schemas.ts";
import {
  itemDeleteSchema,
  itemPutSchema,
  itemSearchSchema,
  namespaceListSchema,
} from "../../schemas/store-schemas.ts";
import { Type } from "../../schemas/typebox.ts";

/** Schemas of request bodies by their names in the OpenAPI document. They are the same schemas that validate requests. */
export const requestBodies = {
  ThreadCreate: threadCreateSchema.schema,
  MachineEvent: machineEventSchema.schema,
  ThreadUpdate: threadUpdateSchema.schema,
  ThreadSearch: threadSearchSchema.schema,
  ThreadCount: threadCountSchema.schema,
  ThreadPrune: threadPruneSchema.schema,
  StateRead: stateReadSchema.schema,
  StateUpdate: stateUpdateSchema.schema,
  HistoryRead: historyReadSchema.schema,
  RunCreate: runCreateSchema.schema,
  RunSearch: runSearchSchema.schema,
  RunsCancel: runsCancelSchema.schema,
  AssistantCreate: assistantCreateSchema.schema,
  AssistantUpdate: assistantUpdateSchema.schema,
  AssistantSearch: assistantSearchSchema.schema,
  AssistantCount: assistantCountSchema.schema,
  AssistantVersions: assistantVersionsSchema.schema,
  AssistantLatest: assistantLatestSchema.schema,
  CronCreate: cronBodySchemas.create,
  CronUpdate: cronBodySchemas.update,
  CronSearch: cronSearchSchema.schema,
  CronPreview: cronPreviewSchema.schema,
  CronCount: cronCountSchema.schema,
  ItemPut: itemPutSchema.schema,
  ItemDelete: itemDeleteSchema.schema,
  ItemSearch: itemSearchSchema.schema,
  NamespaceList: namespaceListSchema.schema,
  Component: componentRequestSchema.schema,
  Subscription: subscriptionSchema.schema,
  Command: Type.Object({
    id: Type.Integer({ minimum: 0 }),
    method: Type.String(),
    params: Type.Optional(Type.Free()),
  }),
};
