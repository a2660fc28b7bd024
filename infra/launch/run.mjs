import { spawn } from "node:child_process"

/** How long a program may take to stop after the first signal, before it is killed: a gateway of several processes takes 15 s, and then ends its database. */
const patienceMillis = 18_000

const running = new Set()
let deadline

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, stop)

// npm cannot pass on the signal that ended its program.
if (process.env.npm_lifecycle_event !== undefined) {
  const npm = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === npm) return
    clearInterval(watch)
    stop("SIGTERM")
  }, 500)
  watch.unref()
}

function stop(signal) {
  if (running.size === 0) leave({ code: null, signal })
  // A terminal sends its interrupt to all processes in the foreground, so the programs have received it already.
  if (!(signal === "SIGINT" && process.stdin.isTTY)) for (const child of running) child.kill(signal)
  // A gateway of several processes replaces them at this signal, and goes on. One process ends by itself.
  if (signal === "SIGHUP") return
  deadline ??= setTimeout(() => running.forEach((child) => child.kill("SIGKILL")), patienceMillis)
}

/**
 * Runs a program, and forwards the signals that ask this process to stop. Resolves with how the program ended, and with its
 * output if that was piped.
 */
export const run = (program, args, options) =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, options)
    let output = ""
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text) => (output += text))
    }
    running.add(child)
    child.once("error", reject)
    child.once("close", (code, signal) => {
      running.delete(child)
      resolve({ code, signal, output })
    })
  })

/** Ends this process in the same way as the program ended. */
export const leave = ({ code, signal }) => {
  if (signal === null) process.exit(code)
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
}
