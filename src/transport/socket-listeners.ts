const nothing = () => undefined;

/** Stores the listeners of a socket. The sockets of each transport extend it, and call the listeners. */
export abstract class SocketListeners {
  protected drainListener: () => void = nothing;
  protected messageListener: (message: Uint8Array | string) => void = nothing;
  protected closeListener: () => void = nothing;

  onDrain(listener: () => void): void {
    this.drainListener = listener;
  }

  onMessage(listener: (message: Uint8Array | string) => void): void {
    this.messageListener = listener;
  }

  /** Adds a listener. It is called after those that were added before. */
  onClose(listener: () => void): void {
    const earlier = this.closeListener;
    this.closeListener = () => {
      earlier();
      listener();
    };
  }
}
