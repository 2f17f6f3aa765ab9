/** The path below which this server has its pages. Servers below different prefixes share the storage and the channels of their origin. */
export const pathPrefix = (): string => new URL(".", location.href).pathname;
