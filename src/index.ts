// --- graphs ---
export {
  graph,
  type Cache,
  type EdgeSpec,
  type GraphDef,
  type NodeFn,
  type NodeOptions,
  type NodeSpec,
  type Retry,
  type Returned,
  type Time,
} from "./graph/graph-builder.ts";
export { value } from "./graph/channels/last-value.ts";
export { list } from "./graph/channels/list.ts";
export { messages } from "./graph/channels/messages.ts";
export { ephemeral, untracked } from "./graph/channels/ephemeral.ts";
export { reduce } from "./graph/channels/reduce.ts";
export {
  branch,
  END,
  send,
  to,
  type Branch,
  type Send,
  type Target,
  type To,
  type ToParent,
} from "./graph/commands.ts";
export { runTools, type ToolMessage } from "./graph/execute-tool-calls.ts";
export { tool, type Tool } from "./graph/tool.ts";
export type { Channel, State, StateSpec, Update } from "./graph/channel.ts";
export type {
  CallChunk,
  Ctx,
  Log,
  MessageInit,
  MessageMaker,
  MessageWriter,
  WholeCall,
} from "./graph/node-context.ts";
export type {
  NamespaceOptions,
  NodeStore,
  PutOptions,
  ReadOptions,
  SearchOptions,
} from "./graph/node-store.ts";
export type {
  DeleteOp,
  FoundItem,
  GetOp,
  Item,
  Namespace,
  NamespacesOp,
  PutOp,
  SearchOp,
  StoreOp,
  StoreResult,
  StoreResults,
} from "./model/store-item.ts";
export type { Schema } from "./graph/standard-schema.ts";
export { REMOVE_ALL, type Message, type MessageLike, type RemoveMessage } from "./graph/message.ts";
export type { InvalidToolCall, ToolCall } from "./graph/tool-call.ts";
export type { Usage, UsageLike } from "./graph/token-usage.ts";

// --- server ---
export {
  createApp,
  createHandler,
  type App,
  type AppOptions,
  type InlineGraph,
  type MachineSnapshot,
  type Handler,
  type HandlerOptions,
} from "./app.ts";
export type { StoreOptions } from "./config/store.ts";

// --- errors ---
export { ServiceError, type ErrorCode } from "./model/errors.ts";
