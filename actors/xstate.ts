/** What is used of XState, and the only way to it: the build rewrites this file, see `bundleXState` in `src/build/bundles.ts`. */
export {
  assign,
  createActor,
  enqueueActions,
  fromCallback,
  sendParent,
  sendTo,
  setup,
  stopChild,
  type ActorLogic,
  type ActorScope,
  type AnyActorLogic,
  type AnyActorRef,
  type InspectionEvent,
  type Snapshot,
} from "xstate";
