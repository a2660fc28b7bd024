import type { Headers, SignatureScheme } from "./SignatureScheme.ts"

/** What of a request its verification looks at. */
export interface InboundRequest {
  readonly method: string
  /** The public URL as the sender called it, with path suffix and query. */
  readonly url: string
  readonly headers: Headers
  /** The query string as it arrived, without `?`; empty when there is none. */
  readonly query: string
  /** The raw bytes, before any parsing. */
  readonly body: Uint8Array
  readonly nowSeconds: number
}

/** A certificate that decides and is not known yet: whoever asks fetches it from there and asks again. */
export interface CertificateNeeded {
  /** An https URL on a host that the provider owns; the verifier has checked that. */
  readonly certificateUrl: string
}

/** Whether a request is genuine. Synchronous and total: it never throws, whatever the request holds. */
export type Check = (request: InboundRequest) => boolean | CertificateNeeded

/** The certificates fetched so far: PEM by URL. */
export type Certificates = (url: string) => string | undefined

/** The settings of `config.auth`, validated: texts by canonical name. */
export type ProviderAuth = Readonly<Record<string, string>>

/** What a provider's handshake is answered with. A handshake is no event: it is stored, answered and routed nowhere. */
export interface Handshake {
  /** Names the kind in the stored record, e.g. `url_verification`. */
  readonly kind: string
  readonly status: number
  readonly contentType: string | null
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
  /** A secret that the sender has announced: stored as `webhook_secret_key` before the answer goes out. */
  readonly remember?: string
  /** An https URL on a host of the provider that has to be fetched to confirm a subscription, before the answer. */
  readonly confirmUrl?: string
  /** Whether the request is answered only when its check passes. False where the provider cannot sign this request. */
  readonly needsCheck: boolean
}

/** `null`: an ordinary request. `refuse`: a handshake with a wrong token, 401. */
export type HandshakeOf = (request: InboundRequest, auth: ProviderAuth) => Handshake | "refuse" | null

/** One setting that a provider's sources have in `config.auth`. */
export interface ProviderSetting {
  readonly name: string
  readonly required: boolean
  /** Masked on read. */
  readonly secret: boolean
  /** Other spellings accepted on write. */
  readonly aliases?: ReadonlyArray<string>
  /** What is stored when it is not given. */
  readonly default?: string
  /**
   * Why a value cannot be used, null when it can. Beyond: not empty, at most 4,096 characters, and no control characters
   * but the line breaks and tabs of a value that is no secret (PEM).
   */
  readonly problem?: (value: string) => string | null
}

/** How a provider's requests are verified. */
export type Verification =
  /**
   * Signatures as data; their secret is `webhook_secret_key`. Of several the first whose header is there decides alone.
   * `tokenHeader`: without any of these headers, this one may hold the secret itself.
   */
  | {
      readonly kind: "scheme"
      readonly schemes: readonly [SignatureScheme, ...ReadonlyArray<SignatureScheme>]
      readonly tokenHeader?: string
    }
  /** A header that equals `api_key`; `header: null` is the one named by the setting `header_key`. */
  | { readonly kind: "token"; readonly header: string | null }
  /** HTTP Basic with `username` and `password`. */
  | { readonly kind: "basic" }
  /**
   * What data cannot say. Null: the settings yield no usable key, and nobody is verified. `age`: of the signed timestamp;
   * null: none is signed.
   */
  | {
      readonly kind: "code"
      readonly age: Age | null
      readonly compile: (auth: ProviderAuth, certificates: Certificates) => Check | null
    }

/**
 * How old a timestamp may be, and how far ahead of now, in seconds. A provider that signs each attempt anew, as one must
 * that documents a tolerance, has the usual five minutes or its own. Where a retry repeats the first attempt's timestamp,
 * or nothing says that it does not, the past is as long as it retries: a replay of the same bytes costs less than an event
 * that was refused whenever it came.
 */
export interface Age {
  readonly past: number
  readonly ahead: number
}

/** What a provider wants of the answer to a request, as far as it says so. */
export interface Answer {
  /** The statuses that it takes for received. */
  readonly status: "2xx" | "200" | "200 or 204" | "204"
  /** How long it waits for the answer; null: it does not say. */
  readonly seconds: number | null
  /** What the gateway answers, unless the source has an answer of its own. */
  readonly body: AnswerBody
}

export type AnswerBody =
  /** Nobody reads it: the gateway's acknowledgement. */
  | "any"
  | "empty"
  /** Empty in a refusal, too. */
  | "always empty"
  /** Empty when the request is a form: what it holds would be shown to a person. */
  | "empty for forms"
  /** Instructions in XML, and these are none; but to what is posted as JSON, the acknowledgement. */
  | "TwiML"
  /** A chat interaction's first answer. */
  | "interaction"
  /** A chat message, shown in the conversation. */
  | "message"

/** One row of the provider table. */
export interface Provider {
  /** The source types that it is for, e.g. `["SVIX", "CLERK", "RESEND"]`. */
  readonly types: ReadonlyArray<string>
  /** What `config.auth_type` reads for it: the nearest of the three. */
  readonly authType: "HMAC" | "API_KEY" | "BASIC_AUTH"
  readonly settings: ReadonlyArray<ProviderSetting>
  readonly verification: Verification
  readonly answer: Answer
  readonly handshake?: HandshakeOf
  /**
   * Headers (lower-case) and query parameters in which its senders present a credential, beside those that `verification`
   * names: they are stored sealed and read masked.
   */
  readonly presents?: { readonly headers?: ReadonlyArray<string>; readonly query?: ReadonlyArray<string> }
}
