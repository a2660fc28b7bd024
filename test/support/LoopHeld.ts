import { get } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"

export interface Held {
  readonly clockMs: number
  readonly processorMs: number
}

const socket = join(tmpdir(), `loop-${process.pid}-${Math.random().toString(36).slice(2)}.sock`)

/** Environment variables of a gateway whose loop is watched (`loopWatch.ts`). */
export const watchedLoop: Readonly<Record<string, string>> = {
  NODE_OPTIONS: `--import=${new URL("loopWatch.ts", import.meta.url).href}`,
  LOOP_WATCH: socket
}

/** The longest time for which that gateway's loop was held since this was asked last. */
export const heldMs = (): Promise<Held> =>
  new Promise((resolve, reject) => {
    get({ socketPath: socket, path: "/" }, (response) => {
      let text = ""
      response.setEncoding("utf8")
      response.on("data", (chunk: string) => (text += chunk))
      response.on("end", () => resolve(JSON.parse(text) as Held))
    }).once("error", reject)
  })
