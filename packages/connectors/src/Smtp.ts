import { Schema } from "effect"
import type { Message } from "@tidegate/model/Message"
import type { SmtpLetter } from "./Brokers.ts"
import { lasting, type Meaning, passing, publishing } from "./BrokerSession.ts"
import { type AttemptFacts, connector } from "./Connector.ts"
import { dkimSettings, faultsOfDkim, signedLetter } from "./Dkim.ts"
import { bodies, envelope, faultsOfMail, letter, mailPerStep, mailSettings, senderSettings, undecoded } from "./Mail.ts"
import { filling, template, Unrenderable } from "./Rendering.ts"
import { inUrl, leadsToServer, serverAddress, serverConnection, serverPlace, serverSignIn } from "./Server.ts"
import { shownWords } from "./ServerWords.ts"
import { setting } from "./Settings.ts"
import { writtenLetter } from "./WrittenLetter.ts"

/** The port at which TLS begins with the connection. At all others the server is asked for it (STARTTLS). */
const portOfTls = 465

const signIn = "the server does not let the destination in"

/** By the command that was refused and the first digit of the reply, or the whole reply. `UTF8` and `SIZE` are the client's own refusals. */
const meanings: Readonly<Record<string, Meaning>> = {
  "GREETING 4": passing("the server takes no connection now"),
  "GREETING 5": passing("the server takes no connection of this gateway"),
  "EHLO 4": passing("the server takes no connection now"),
  "EHLO 5": passing("the server does not speak ESMTP"),
  "STARTTLS 4": passing("the server speaks no TLS now", "ERR_SSL_WRONG_VERSION_NUMBER"),
  "STARTTLS 5": passing("the server speaks no TLS", "ERR_SSL_WRONG_VERSION_NUMBER"),
  "AUTH 4": passing("the server cannot judge the credentials now"),
  "AUTH 5": passing(signIn, "AUTH_REJECTED"),
  MECHANISM: passing("the server offers neither AUTH PLAIN nor AUTH LOGIN", "AUTH_REJECTED"),
  "MAIL 4": passing("the server takes no letter of this sender now"),
  "MAIL 5": lasting("the server takes no letter of this sender"),
  "MAIL 530": passing(signIn, "AUTH_REJECTED"),
  "RCPT 4": passing("the server takes no letter to a recipient now"),
  "RCPT 5": lasting("the server takes no letter to a recipient"),
  "RCPT 530": passing(signIn, "AUTH_REJECTED"),
  // Servers use this reply if a message has too many recipients (RFC 5321, 4.5.3.1.10).
  "RCPT 552": passing("the server takes no letter to a recipient now"),
  "DATA 4": passing("the server does not take the letter now"),
  "DATA 5": lasting("the server does not take the letter"),
  UTF8: lasting("the server takes addresses of ASCII letters alone"),
  SIZE: lasting("the letter is larger than the server takes")
}

/** Addresses and domain names travel in ASCII where that is possible: every server understands it. */
const domainOf = (address: string): string => {
  const domain = address.slice(address.lastIndexOf("@") + 1)
  return /^\p{ASCII}*$/u.test(domain) ? domain : (URL.parse(`http://${domain}`)?.hostname ?? "")
}

const onWire = (address: string): string => {
  const domain = domainOf(address)
  if (domain === "") throw new Unrenderable("an address of the letter has a domain that is none")
  return `${address.slice(0, address.lastIndexOf("@"))}@${domain}`
}

/** Sends e-mail over a mail server of the destination's owner. */
export const smtp = connector({
  type: "SMTP",
  name: "E-mail by SMTP",
  description: "Sends an e-mail through your own mail server.",
  settings: {
    ...serverAddress(587, "smtp.example.com"),
    ...senderSettings("a sender that the server allows"),
    ...mailSettings,
    ...dkimSettings,
    ...serverConnection,
    tls_first: setting(
      Schema.Boolean.annotate({
        description: `Whether TLS begins before the server's greeting; false: by STARTTLS; null: true at port ${portOfTls} alone`
      }),
      null,
      "must be true, false or null"
    )
  },
  pace: { perSecond: 1, because: "mail servers take a burst of letters for abuse" },
  check: (settings) => [
    ...faultsOfMail(settings),
    ...faultsOfDkim(settings),
    ...(settings.tls_first === true && settings.tls_mode === "disable"
      ? [{ path: "config.tls_first", message: "must not be true without TLS" }]
      : [])
  ],
  auths: ["DATABASE_PASSWORD", "NO_AUTH"],
  leadsTo: leadsToServer,
  credentials: "mask",
  perStep: { ...mailPerStep, address: serverPlace },
  example: {
    name: "mail-to-ops",
    type: "SMTP",
    config: {
      host: "smtp.example.com",
      from: "orders@example.com",
      to: "ops@example.com",
      text_template: "Order {{payload.id}} has arrived",
      auth_type: "DATABASE_PASSWORD",
      auth: { username: "orders@example.com", password: "a-password" }
    }
  },
  open: ({ from, from_name, ...config }, { settings }) => {
    const compiled = letter(config)
    const sender = template(from)
    const name = from_name === null ? null : template(from_name)
    const tlsFirst = config.tls_mode !== "disable" && (config.tls_first ?? config.port === portOfTls)
    const place = { ...serverSignIn(config, settings), tlsFirst }
    const { password, username } = place
    const letterOf = (message: Message, facts: AttemptFacts): SmtpLetter => {
      const fill = filling(message, facts)
      const addressed = envelope(fill, compiled)
      const { bcc, cc, to } = addressed
      const address = compiled.address(fill, sender, "from")
      const domain = domainOf(address)
      const written = writtenLetter(
        {
          ...addressed,
          ...bodies(fill, compiled),
          from: { name: name === null ? "" : undecoded(compiled.line(fill, name)), address },
          id: facts.webhookId,
          domain,
          date: new Date(facts.createdAt)
        },
        { keepBcc: false }
      )
      return {
        from: onWire(address),
        to: [...to, ...cc, ...bcc].map(onWire),
        content: Buffer.from(signedLetter(written, config, domain))
      }
    }
    return {
      kind: "session",
      method: "SEND",
      shownUrl: `${tlsFirst ? "smtps" : "smtp"}://${inUrl(config)}`,
      // A connection can send only one mail at a time.
      atOnce: 1,
      connect: publishing({
        protocol: "smtp",
        place,
        messageOf: letterOf,
        meanings,
        classOf: (code) => code.slice(0, -2),
        // The encodings in which a server receives the password. It may repeat any of them.
        secrets: [
          password,
          ...[password, `\0${username}\0${password}`].map((text) => Buffer.from(text).toString("base64"))
        ],
        answer: (said) => ({ reply: shownWords(said, [password]) })
      })
    }
  }
})
