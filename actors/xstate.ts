/**
 * The parts of XState that Heddle uses. Import XState only through this file: the build rewrites it, see
 * `bundleXState` in `src/build/package-bundles.ts`.
 */
export {
  createActor,
  type ActorLogic,
  type AnyActorScope,
  type AnyActorLogic,
  type AnyActorRef,
  type EventObject,
  type InspectionEvent,
  type Snapshot,
} from "xstate";
