/** The most values one filter of a list may name. */
export const maxValues = 100

/** The largest body of a control call, in bytes. */
export const maxControlBody = 1024 * 1024

/** The largest body of a call that tries a filter, in bytes. */
export const maxTrialBody = 256 * 1024

/** The largest body of a call that tries a workflow, in bytes: a definition, and as much for a sample and mocks. */
export const maxWorkflowTest = 2 * 1024 * 1024

/**
 * The most JSON values of a body that brings the definition of a workflow, and of one that brings a sample, or a source, with it. They are counted
 * before it is parsed; what a definition itself may hold is less.
 */
export const maxDefinitionValues = 25_000
export const maxWorkflowValues = 50_000

/** The longest code of a transformation, in bytes of UTF-8. */
export const maxCode = 1024 * 1024

/** The largest body of a call that carries code, in bytes: code, with what JSON escapes in it. */
export const maxCodeBody = 4 * maxCode

/**
 * The largest body of a call that writes a source, in bytes: 50 rules and a fallback with bodies of 64 KiB each, with what
 * JSON escapes in them.
 */
export const maxSourceBody = 8 * 1024 * 1024

/** The largest body of a call that writes a connection, in bytes: an inline transformation, and conditions of 50 filters. */
export const maxConnectionBody = 8 * 1024 * 1024

/** The largest body that a request may have, in bytes. */
export const maxRequestBody = 10 * 1024 * 1024

/** The largest body of a call that replays a request, in bytes: a body as large as a request may have, with what JSON escapes in it. */
export const maxReplayCall = 2 * maxRequestBody

/** The largest body of a trial run, in bytes: code, and a sample as large as a request may be. */
export const maxRunBody = maxCodeBody + 12 * 1024 * 1024

/**
 * The most values (members, elements, the whole) that a JSON body may have where it is walked value by value: so many take
 * some hundred milliseconds, and nothing else moves meanwhile.
 */
export const maxJsonValues = 100_000

/** The most bytes that are kept of the body of an answer: a target's, a mock's, an upstream's. */
export const maxCapturedBytes = 64 * 1024
