/** The most values one filter of a list may name. */
export const maxValues = 100

/** The largest body of a control call, in bytes. */
export const maxControlBody = 1024 * 1024
