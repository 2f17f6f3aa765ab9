/**
 * The parts of XState that Heddle uses. Import XState only through this file: the build rewrites it, see
 * `bundleXState` in `src/build/bundles.ts`.
 */
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
