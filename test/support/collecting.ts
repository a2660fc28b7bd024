import { Collector } from "./Collector.ts"
import { it as gatewayIt } from "./it.ts"

/**
 * `it` with a collector of traces and metrics for the file. All tests of the file share it, so each has to select its own data.
 */
export const it = gatewayIt.extend("collector", { scope: "file" }, async ({}, { onCleanup }) => {
  const collector = await Collector.start()
  onCleanup(() => collector.close())
  return collector
})
