import { BrokerRefusal, type SmtpLetter, type SmtpServer } from "@tidegate/connectors/Brokers"

/** The commands of SMTP (RFC 5321) that send letters. */

export interface Reply {
  readonly code: string
  readonly lines: ReadonlyArray<string>
}

/** A command, and what its refusal is called. */
export interface Command {
  readonly name: string
  /** The first digit of the reply that goes on. */
  readonly goesOn: "2" | "3"
  readonly parts: ReadonlyArray<Uint8Array>
  /** With it the server has the whole letter. */
  readonly isLetter?: true
}

/** What the server can do, by the word of its line in the reply to EHLO. */
export type Abilities = ReadonlyMap<string, string>

export const refusal = (code: string, said = ""): BrokerRefusal => new BrokerRefusal({ code, said, shared: false })

export const command = (name: string, text: string, goesOn: Command["goesOn"] = "2"): Command => ({
  name,
  goesOn,
  parts: [Buffer.from(`${text}\r\n`)]
})

/** The gateway has no name that a mail server could know: it says what other programs say that have none. */
export const hello = command("EHLO", "EHLO [127.0.0.1]")

const base64 = (text: string): string => Buffer.from(text).toString("base64")

export const abilitiesIn = ({ lines }: Reply): Abilities =>
  new Map(
    lines.slice(1).map((line): [string, string] => {
      const [word = "", ...rest] = line.toUpperCase().split(/[ =]/)
      return [word, rest.join(" ")]
    })
  )

/** The commands that sign in; null: the server offers no way that is known here. */
export const signInBy = (mechanisms: string, { password, username }: SmtpServer): ReadonlyArray<Command> | null => {
  const offered = new Set(mechanisms.split(" "))
  if (offered.has("PLAIN")) return [command("AUTH", `AUTH PLAIN ${base64(`\0${username}\0${password}`)}`)]
  if (!offered.has("LOGIN")) return null
  return [command("AUTH", "AUTH LOGIN", "3"), command("AUTH", base64(username), "3"), command("AUTH", base64(password))]
}

/** A line that begins with a dot gets a second one, because a dot alone ends the letter. */
const dotted = (content: Uint8Array): Uint8Array => {
  const letter = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
  if (letter[0] !== 0x2e && !letter.includes("\r\n.")) return letter
  return Buffer.from(letter.toString("latin1").replaceAll(/^\./gm, ".."), "latin1")
}

const isAscii = (text: string): boolean => /^\p{ASCII}*$/u.test(text)

/** The commands that send a letter, or why the server cannot take it. */
export const transactionOf = (
  { content, from, to }: SmtpLetter,
  abilities: Abilities
): ReadonlyArray<Command> | BrokerRefusal => {
  const needsUtf8 = ![from, ...to].every(isAscii)
  if (needsUtf8 && !abilities.has("SMTPUTF8")) return refusal("UTF8")
  const size = abilities.get("SIZE")
  // Zero: the server has no fixed limit.
  if (size !== undefined && Number(size) > 0 && content.length > Number(size)) return refusal("SIZE")
  const sized = size === undefined ? "" : ` SIZE=${content.length}`
  return [
    command("MAIL", `MAIL FROM:<${from}>${sized}${needsUtf8 ? " SMTPUTF8" : ""}`),
    ...to.map((address) => command("RCPT", `RCPT TO:<${address}>`)),
    command("DATA", "DATA", "3"),
    { name: "DATA", goesOn: "2", parts: [dotted(content), Buffer.from(".\r\n")], isLetter: true }
  ]
}
