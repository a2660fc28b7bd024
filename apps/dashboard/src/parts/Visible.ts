import { useSyncExternalStore } from "react"

const follow = (changed: () => void): (() => void) => {
  document.addEventListener("visibilitychange", changed)
  return () => document.removeEventListener("visibilitychange", changed)
}

/** Whether the reader can see the page: it asks the gateway for nothing while it is in the background. */
export const useIsVisible = (): boolean => useSyncExternalStore(follow, () => document.visibilityState !== "hidden")
