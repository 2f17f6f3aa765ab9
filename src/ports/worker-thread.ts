/** A worker thread, with its own memory. */
export interface WorkerThread<Out, In> {
  /** Sends a message, as a copy. @throws DOMException `DataCloneError` for values that cannot be cloned, such as a function */
  post(message: Out): void;
  /** Registers the receiver of messages. Called once, before anything is posted. */
  onMessage(take: (message: In) => void): void;
  /**
   * Registers a listener of the thread's end. `why` is a text that says how the thread ended: by itself, by an uncaught error, or because
   * it was terminated.
   */
  onEnd(listener: (why: string) => void): void;
  /** Ends the thread immediately. Resolves when it has ended. */
  terminate(): Promise<void>;
}
