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
 * The children's program without its types. One that strips them itself, as Node would have it, keeps the stripper: 28 MB, and 150 ms
 * of CPU to start. Nor is it loaded into this process, which often has none. So it is done once, by a process that ends; nothing is written
 * where a child might read what another has changed.
 */
export const childProgram = (): Promise<string> => {
  const program = (stripped ??= strip())
  program.catch(() => {
    // The next child that starts has it tried again.
    if (stripped === program) stripped = undefined
  })
  return program
}
