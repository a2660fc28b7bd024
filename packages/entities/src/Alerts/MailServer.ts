import { createTransport } from "nodemailer"
import { Context, Effect, Layer, Redacted } from "effect"

/** The operator's mail server. */
export interface MailSettings {
  /** `smtp://` or `smtps://`, with user name and password if the server wants them. */
  readonly url: Redacted.Redacted
  /** The sender's address. */
  readonly from: string
}

/** A letter of plain text. */
export interface Letter {
  readonly to: ReadonlyArray<string>
  readonly subject: string
  readonly text: string
  /** Without brackets, stable: the same letter has it again. */
  readonly messageId: string
  readonly references: ReadonlyArray<string>
  readonly listId: string
}

/** Why a letter was not taken. `code`: the server's reply code; null: none came. */
export interface MailRefusal {
  readonly code: number | null
}

/** Sends letters through the operator's mail server; null: there is none. */
export class MailServer extends Context.Service<
  MailServer,
  {
    readonly from: string
    /** Returns the server's reply code. */
    readonly send: (letter: Letter) => Effect.Effect<number, MailRefusal>
  } | null
>()("@tidegate/entities/MailServer") {
  static readonly layer = (settings: MailSettings | null): Layer.Layer<MailServer> =>
    Layer.succeed(MailServer, settings === null ? null : makeMailServer(settings))
}

const patience = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000 }

const makeMailServer = ({ from, url }: MailSettings): NonNullable<MailServer["Service"]> => {
  const { hostname, password, port, protocol, username } = new URL(Redacted.value(url))
  const transport = createTransport({
    host: hostname.replace(/^\[(.*)\]$/, "$1"),
    secure: protocol === "smtps:",
    ...(port === "" ? {} : { port: Number(port) }),
    ...(username === "" ? {} : { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }),
    ...patience,
    disableFileAccess: true,
    disableUrlAccess: true
  })
  return {
    from,
    send: ({ listId, messageId, references, subject, text, to }) =>
      Effect.map(
        Effect.tryPromise({
          try: () =>
            transport.sendMail({
              // As objects, so that an address is never read as a list of several.
              from: { name: "Tidegate", address: from },
              to: to.map((address) => ({ name: "", address })),
              subject,
              text,
              messageId: `<${messageId}>`,
              references: references.map((one) => `<${one}>`),
              ...(references.length === 0 ? {} : { inReplyTo: `<${references.at(-1)}>` }),
              headers: { "List-Id": `<${listId}>`, "Auto-Submitted": "auto-generated" }
            }),
          catch: (error): MailRefusal => ({
            code: (error as { readonly responseCode?: number } | null)?.responseCode ?? null
          })
        }),
        ({ response }) => Number(/^\d{3}/.exec(response)?.[0] ?? 250)
      )
  }
}
