/**
 * What is used of XState, and the only way to it. The build writes it anew without object spread (`build:xstate`): in V8
 * before 12, an object that is spread first and then given members that are new has a hidden class of its own, so that the
 * options of each actor cost 8 us to make and one more for every member that is read of them. What it puts in the place of a
 * spread is `Object.assign`, which V8 knows by heart; esbuild's own helper defines member after member.
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
