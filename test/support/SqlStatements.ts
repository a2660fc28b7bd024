/** The major version of the protocol, which a session sends first. Any other number is another request (TLS, cancellation). */
const protocol = 3

const ended = (bytes: Buffer, from: number): number => bytes.indexOf(0, from)
const textAt = (bytes: Buffer, from: number): string => bytes.toString("utf8", from, ended(bytes, from))

/**
 * Counts the statements that a process sends to PostgreSQL, by their text without numbers and quoted values. They are read from
 * the connection, so none is missed, whichever part of the process sends it.
 */
export class SqlStatements {
  #counts = new Map<string, number>()

  /** How often each statement was executed since the counts were reset. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts
  }

  restart(): void {
    this.#counts = new Map()
  }

  /** Makes a reader of what the process sends on one connection, from the first byte. */
  readonly reader = (): ((sent: Buffer) => void) => {
    let rest: Buffer = Buffer.alloc(0)
    let isOpen = false
    const prepared = new Map<string, string>()
    const portals = new Map<string, string>()

    const message = (type: string, body: Buffer): void => {
      if (type === "Q") this.#count(textAt(body, 0))
      else if (type === "P") prepared.set(textAt(body, 0), textAt(body, ended(body, 0) + 1))
      else if (type === "B") portals.set(textAt(body, 0), prepared.get(textAt(body, ended(body, 0) + 1))!)
      else if (type === "E") this.#count(portals.get(textAt(body, 0))!)
    }

    return (sent) => {
      rest = Buffer.concat([rest, sent])
      for (;;) {
        // The first message of a session has no type byte.
        const start = isOpen ? 1 : 0
        if (rest.length < start + 4) return
        const end = start + rest.readInt32BE(start)
        if (rest.length < end) return
        const body = rest.subarray(start + 4, end)
        if (isOpen) message(String.fromCharCode(rest[0]!), body)
        else isOpen = body.readInt16BE(0) === protocol
        rest = rest.subarray(end)
      }
    }
  }

  #count(statement: string): void {
    const words = statement
      .trim()
      .replaceAll(/\s+/g, " ")
      .replaceAll(/'[^']*'|\d+/g, "?")
    this.#counts.set(words, (this.#counts.get(words) ?? 0) + 1)
  }
}
