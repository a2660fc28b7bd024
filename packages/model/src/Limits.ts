/** The most values one filter of a list may name. */
export const maxValues = 100

/** The largest body of a control call, in bytes. */
export const maxControlBody = 1024 * 1024

/** The longest code of a transformation, in bytes of UTF-8. */
export const maxCode = 1024 * 1024

/** The largest body of a call that carries code or a request sample, in bytes: code, with what JSON escapes in it. */
export const maxCodeBody = 4 * maxCode

/**
 * The most values (members, elements, the whole) that a JSON body may have where it is walked value by value: so many take
 * some hundred milliseconds, and nothing else moves meanwhile.
 */
export const maxJsonValues = 100_000
