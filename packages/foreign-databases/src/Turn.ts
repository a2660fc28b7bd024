/** Waits for another iteration of the event loop, in which others have their turn: a promise that is settled already waits for none. */
export const turn = (): Promise<void> => new Promise((go) => setImmediate(go))
