import { Collector } from "./Collector.ts"
import { it as gatewayIt } from "./it.ts"

/** `it` with a collector of traces and metrics for the file. What it holds is of all its tests: each asks for its own. */
export const it = gatewayIt.extend("collector", { scope: "file" }, async ({}, { onCleanup }) => {
  const collector = await Collector.start()
  onCleanup(() => collector.close())
  return collector
})
