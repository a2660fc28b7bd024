/** Resolves after that time, or as soon as the signal aborts. */
export const sleeping = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const over = (): void => {
      clearTimeout(timer)
      signal.removeEventListener("abort", over)
      resolve()
    }
    const timer = setTimeout(over, milliseconds)
    signal.addEventListener("abort", over, { once: true })
    if (signal.aborted) over()
  })
