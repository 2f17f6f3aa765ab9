/** Which webhooks a server allows, and how it sends them. */
export interface WebhookPolicy {
  /** True: no webhooks are sent, even if a run names one. */
  readonly isDisabled?: boolean;
  /** True: webhooks may go to loopback and private addresses. */
  readonly allowInternal: boolean;
  /** The secret with which each attempt is signed; null for unsigned. */
  readonly secret: string | null;
  /** Headers sent with each attempt. Names are lower-case. */
  readonly headers: { readonly [name: string]: string };
  /** The most milliseconds that one attempt may take. */
  readonly timeout: number;
  /** Number of attempts before a delivery becomes a dead letter. */
  readonly attempts: number;
  readonly requireHttps: boolean;
  /** Allowed host names, or `*.name` for subdomains; null for any. */
  readonly domains: readonly string[] | null;
  /** Allowed ports; null for any. */
  readonly ports: readonly number[] | null;
  /** True: a webhook may be a path on this server. */
  readonly ownPaths: boolean;
  readonly maxUrlLength: number;
}
