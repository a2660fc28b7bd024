/** How a bearer token is obtained: from whom, as whom and for what. */
export interface Grant {
  /** Where tokens are asked for. */
  readonly tokenUrl: string
  /** What for, as it is written; null: what its API's connector says, or whatever the provider gives. */
  readonly scope: string | null
  readonly how: ClientCredentials | RefreshToken | AuthorizationCode | Assertion
}

/** What a provider knows the gateway as. */
export interface Client {
  readonly id: string
  readonly secret: string
  readonly method: "client_secret_basic" | "client_secret_post"
}

interface ClientCredentials {
  readonly kind: "client_credentials"
  readonly client: Client
  readonly audience: string | null
}

interface RefreshToken {
  readonly kind: "refresh_token"
  readonly client: Client
  readonly refreshToken: string
}

/** Somebody has consented, or is going to. */
export interface AuthorizationCode {
  readonly kind: "authorization_code"
  readonly client: Client
  readonly audience: string | null
  /** Where a person consents; null: they have done so elsewhere. */
  readonly authorizationUrl: string | null
  /** Where they are led back to; null: to the gateway. */
  readonly redirectUri: string | null
  /** What their consent has brought elsewhere, good for one exchange. */
  readonly code: { readonly code: string; readonly verifier: string | null } | null
  readonly refreshToken: string | null
}

/** A service account: it signs who it is. */
interface Assertion {
  readonly kind: "assertion"
  readonly email: string
  /** PKCS 8, in PEM. */
  readonly privateKey: string
  readonly keyId: string | null
  /** Whom it acts for, where it may act for others. */
  readonly subject: string | null
}
