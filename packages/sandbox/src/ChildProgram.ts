import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"

const stripper = fileURLToPath(new URL("stripTypes.ts", import.meta.url))
const limits = { maxBuffer: 4 * 1_048_576, timeout: 30_000 }

const strip = (): Promise<string> =>
  new Promise((resolve, reject) => {
    execFile(process.execPath, ["--no-warnings", stripper], { env: {}, ...limits }, (error, text) => {
      if (error === null) resolve(text)
      else reject(error)
    })
  })

let stripped: Promise<string> | undefined

/**
 * The children's program without its types. If each child stripped the types itself, as Node would, it would keep the stripper: 28 MB,
 * and 150 ms of CPU at start. This process often needs no stripper either. So a short-lived process strips once. Nothing is written to
 * disk, because one child could then read what another has changed.
 */
export const childProgram = (): Promise<string> => {
  const program = (stripped ??= strip())
  program.catch(() => {
    // The next child that starts tries again.
    if (stripped === program) stripped = undefined
  })
  return program
}
