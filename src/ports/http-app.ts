export type Fetch = (request: Request, env?: object) => Response | undefined | Promise<Response | undefined>;

/** An HTTP application of the project: a function of web requests, or an object with a method `fetch`, such as an application of Hono. */
export type HttpApp = Fetch | { fetch: Fetch };
