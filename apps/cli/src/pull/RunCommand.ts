import { spawn } from "node:child_process"

/** The command has its own process group, so that all its processes can be stopped. Windows has none. */
const hasGroups = process.platform !== "win32"

/**
 * Runs a command in a shell. Standard input is the text, and the rest is ours. It is asked to stop (SIGTERM) when the signal aborts, and
 * waited for. Null: it has succeeded. A text: why it has not.
 */
export const runCommand = (command: string, input: string, signal: AbortSignal): Promise<string | null> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, { shell: true, stdio: ["pipe", "inherit", "inherit"], detached: hasGroups })
    const stop = (): void => {
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
      if (hasGroups) process.kill(-child.pid, "SIGTERM")
      else child.kill()
    }
    const over = (): void => signal.removeEventListener("abort", stop)
    child.once("error", (error) => {
      over()
      reject(error)
    })
    child.once("close", (code, killedBy) => {
      over()
      resolve(code === 0 ? null : killedBy === null ? `exit code ${code}` : `ended by ${killedBy}`)
    })
    // A command need not read what it gets.
    child.stdin.on("error", () => undefined)
    child.stdin.end(input)
    signal.addEventListener("abort", stop, { once: true })
    if (signal.aborted) stop()
  })
