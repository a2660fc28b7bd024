/** The largest number of values in one filter of a list. */
export const maxValues = 100

/** The largest body of a control call, in bytes. */
export const maxControlBody = 1024 * 1024

/** The largest body of a call that tests a filter, in bytes. */
export const maxTestBody = 256 * 1024

/** The largest body of a call that tests a workflow, in bytes: a definition, and the same size for a sample and mocks. */
export const maxWorkflowTest = 2 * 1024 * 1024

/**
 * The largest number of JSON values in a body with a workflow's definition, and in one that also has a sample or a source. They
 * are counted before the body is parsed. The limit of a definition itself is lower.
 */
export const maxDefinitionValues = 25_000
export const maxWorkflowValues = 50_000

/** The longest code of a transformation, in bytes of UTF-8. */
export const maxCode = 1024 * 1024

/** The largest body of a call with code, in bytes: the code with JSON escapes. */
export const maxCodeBody = 4 * maxCode

/**
 * The largest body of a call that writes a source, in bytes: 50 rules and a fallback with bodies of 64 KiB each, with JSON
 * escapes.
 */
export const maxSourceBody = 8 * 1024 * 1024

/** The largest body of a call that writes a connection, in bytes: an inline transformation, and conditions of 50 filters. */
export const maxConnectionBody = 8 * 1024 * 1024

/** The largest body of a received request, in bytes. */
export const maxRequestBody = 10 * 1024 * 1024

/** The largest body of a call that replays a request, in bytes: the largest request body with JSON escapes. */
export const maxReplayCall = 2 * maxRequestBody

/** The largest body of a call that tests code, in bytes: code, and a sample of the size of a request. */
export const maxRunBody = maxCodeBody + 12 * 1024 * 1024

/**
 * The largest number of values (members, elements, the whole) of a JSON body that is processed value by value: so many take some
 * hundred milliseconds and block the event loop.
 */
export const maxJsonValues = 100_000

/** How many bytes of an answer's body are stored: of a target's, a mock's or an upstream's. */
export const maxCapturedBytes = 64 * 1024
