import type { Socket } from "node:net"

/** A NATS server as a suite wants it. */

export const greeting = (change: object = {}): string =>
  `INFO ${JSON.stringify({ headers: true, max_payload: 1_048_576, nonce: "a", ...change })}\r\n`

/** Answers each message so, with the subject that its confirmation is expected at. */
export type Answer = (socket: Socket, inbox: string, count: number) => void

/** Reads and answers what a client sends. */
export const serving = (socket: Socket, answer: Answer, signIn = "PONG\r\n"): void => {
  let held = ""
  let count = 0
  socket.on("data", (chunk: Buffer) => {
    held += chunk.toString("latin1")
    for (;;) {
      const [all, , inbox] = /(?:^|\r\n)(PING\r\n|HPUB \S+ (\S+) [^\r]*\r\n)/.exec(held) ?? []
      if (all === undefined) return
      held = held.slice(held.indexOf(all) + all.length - 2)
      if (inbox === undefined) socket.write(signIn)
      else answer(socket, inbox, ++count)
    }
  })
}

/** A server that lets everybody in. */
export const nats =
  (answer: Answer, { info = greeting(), signIn = "PONG\r\n" } = {}) =>
  (socket: Socket): void => {
    socket.write(info)
    serving(socket, answer, signIn)
  }

export const message = (subject: string, text: string): string =>
  `MSG ${subject} 1 ${Buffer.byteLength(text)}\r\n${text}\r\n`
