/**
 * Begins to measure. The returned function says how many milliseconds of processor time this process has used since then: what other
 * processes do, does not count.
 */
export const processorTime = (): (() => number) => {
  const began = process.cpuUsage()
  return () => {
    const { system, user } = process.cpuUsage(began)
    return (system + user) / 1_000
  }
}
