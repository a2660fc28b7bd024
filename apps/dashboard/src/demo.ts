import { beginDemo } from "./gateway.ts"

/** The demo user. Whoever opens the dashboard on the gateway's own machine is signed in at once, unless they have signed out there. */

const signedOut = "signed-out"
let isAtOnce = false

const isOwnMachine = (): boolean => ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname)

/** Whether to sign in the demo user automatically, if the gateway offers it here. Only once, because a browser may refuse the cookie. */
export const signsInAtOnce = (): boolean => !isAtOnce && isOwnMachine() && localStorage.getItem(signedOut) === null

export const signInAtOnce = async (): Promise<void> => {
  isAtOnce = true
  await beginDemo()
}

/** Whether the reader was signed in without being asked since the page was loaded. */
export const wasSignedInAtOnce = (): boolean => isAtOnce

/** From now on, this browser shows the sign-in to those who are not signed in. */
export const rememberSignOut = (): void => localStorage.setItem(signedOut, "yes")
