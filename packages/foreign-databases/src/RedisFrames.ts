import { BrokerRefusal, type RedisDatabase } from "@tidegate/connectors/Brokers"

/** The words of Redis's protocol (RESP), version 2. */

/** An error repeats at most the name of a command. */
export const longestLine = 4_096

const lineEnd = Buffer.from("\r\n")

type Part = string | Uint8Array

/** A command as an array of texts. Bytes are not copied. */
export const command = (...parts: ReadonlyArray<Part>): ReadonlyArray<Uint8Array> => [
  Buffer.from(`*${parts.length}\r\n`),
  ...parts.flatMap((part) => {
    const bytes = typeof part === "string" ? Buffer.from(part) : part
    return [Buffer.from(`$${bytes.length}\r\n`), bytes, lineEnd]
  })
]

/** An error: its first word is the code. */
export const refusalOf = (line: string): BrokerRefusal => {
  const [, code = "ERR", said = line.slice(1)] = /^-([A-Z]{1,32})(?: (.*))?$/.exec(line) ?? []
  return new BrokerRefusal({ code, said, shared: false })
}

/**
 * The commands with which one signs in, and chooses the database. Without a password the first one asks whether one is let in: a long command of
 * one that is not is answered as an error of the protocol.
 */
export const signInTo = ({ database, password, username }: RedisDatabase): ReadonlyArray<ReadonlyArray<Uint8Array>> => [
  password === "" ? command("PING") : command("AUTH", username, password),
  ...(database === 0 ? [] : [command("SELECT", String(database))])
]
