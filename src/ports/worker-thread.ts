/** Another thread, with a memory of its own. */
export interface WorkerThread<Out, In> {
  /** Gives it a message, by copy. @throws DOMException `DataCloneError` for what has no copy, such as a function */
  post(message: Out): void;
  /** Called once, before anything is posted. */
  onMessage(take: (message: In) => void): void;
  /** `why` tells how it ended, for people: by itself, by an error that nothing caught, or because it was told to. */
  onEnd(told: (why: string) => void): void;
  /** Ends it where it stands; resolves once it has. */
  terminate(): Promise<void>;
}
