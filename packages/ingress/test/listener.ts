import { createInterface } from "node:readline"
import { wireServer } from "@tidegate/ingress/wire/WireServer"

/** A process that listens on each port that it reads from its input, reports the result, and closes the port at the next line. */
const say = (text: string): void => void process.stdout.write(`${text}\n`)

let server: ReturnType<typeof wireServer> | null = null
createInterface(process.stdin).on("line", (line) => {
  if (server !== null) {
    server.close(() => say("closed"))
    server = null
    return
  }
  server = wireServer(null)
  server.once("error", (error: NodeJS.ErrnoException) => say(String(error.code)))
  server.listen({ port: Number(line), host: "127.0.0.1" }, () => say("listening"))
})
