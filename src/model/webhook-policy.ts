/** What a server's webhooks may be, and how they are sent. */
export interface WebhookPolicy {
  /** May they go to loopback and private addresses? */
  readonly allowInternal: boolean;
  /** Signs each try; null: unsigned. */
  readonly secret: string | null;
  /** Sent with each try. Names are lower-case. */
  readonly headers: { readonly [name: string]: string };
  /** Milliseconds that one try may take. */
  readonly timeout: number;
  /** Tries before a delivery is given up. */
  readonly attempts: number;
  readonly requireHttps: boolean;
  /** Names, or `*.name` for what is below it; null: any. */
  readonly domains: readonly string[] | null;
  /** Null: any. */
  readonly ports: readonly number[] | null;
  /** May a webhook be a path on this very server? */
  readonly ownPaths: boolean;
  readonly maxUrlLength: number;
}
