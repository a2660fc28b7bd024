import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate } from "@tanstack/react-router"
import { useState } from "react"
import type { Row } from "../gateway.ts"
import { ChoiceField, Form, TextField, textOf } from "../parts/Form.tsx"
import { useRefresh, useSession } from "../session.ts"

type Account = Row<"ProviderAccount">
type Provider = Row<"SourceProvider">
type Mode = "oauth2" | "api_key"

/** A link that is safe to follow: the gateway has made it of the provider's settings. */
const isWeb = (url: string): boolean => /^https?:\/\//.test(url)

/** Asks for a consent at the provider, which sends the browser back to the gateway. */
const Consent = ({ url }: { readonly url: string }) => (
  <div className="notice" role="status">
    <p>
      {isWeb(url) ? (
        <a href={url} target="_blank" rel="noreferrer noopener">
          Give the consent at the provider
        </a>
      ) : (
        <span className="mono">{url}</span>
      )}{" "}
      within ten minutes, in a new tab. Then confirm it at the gateway, and come back: the account is in{" "}
      <Link to="/accounts">the list</Link>.
    </p>
  </div>
)

/** The fields of one way to connect, for a new account or to connect one again. */
export const Connect = ({ account, provider }: { readonly provider: Provider; readonly account?: Account }) => {
  const { client } = useSession()
  const refresh = useRefresh()
  const navigate = useNavigate()
  const { auth } = provider
  const known = account === undefined ? null : account.lifecycle.reconnect_mode === "oauth2" ? "oauth2" : "api_key"
  const modes = auth.modes.filter((one): one is Mode => one !== "none" && (known === null || one === known))
  const [chosen, setMode] = useState<Mode | null>(null)
  const [consent, setConsent] = useState<string | null>(null)
  const mode = chosen ?? modes[0]
  if (mode === undefined) return <p className="muted">{provider.name} needs no account.</p>
  if (consent !== null) return <Consent url={consent} />
  const fields = auth.credential_fields.filter((one) => one.modes.length === 0 || one.modes.includes(mode))
  const optional = (form: HTMLFormElement, name: string) => {
    const value = textOf(form, name)
    return value === "" ? {} : { [name]: value }
  }
  const send = async (form: HTMLFormElement) => {
    const common = {
      provider_key: provider.key,
      ...optional(form, "name"),
      ...optional(form, "base_url"),
      ...(account === undefined ? {} : { account_id: account.id })
    }
    if (mode === "oauth2") {
      const scopes = textOf(form, "scopes")
      const { authorization_url } = await client.post("/provider-accounts/oauth/start", {
        body: {
          ...common,
          client_id: textOf(form, "client_id"),
          ...optional(form, "client_secret"),
          token_auth_method: textOf(form, "token_auth_method") as "client_secret_post",
          ...(scopes === "" ? {} : { scopes: scopes.split(/\s+/) })
        }
      })
      return setConsent(authorization_url)
    }
    const credentials = Object.fromEntries(
      fields.flatMap(({ key }) => {
        const value = textOf(form, `credential.${key}`)
        return value === "" ? [] : [[key, value]]
      })
    )
    const { id } = await client.post("/provider-accounts/credentials/connect", { body: { ...common, credentials } })
    await refresh()
    await navigate({ to: `/accounts/${id}` })
  }
  return (
    <Form
      key={mode}
      call={mode === "oauth2" ? "POST /provider-accounts/oauth/start" : "POST /provider-accounts/credentials/connect"}
      label={mode === "oauth2" ? "Ask for the consent" : account === undefined ? "Connect" : "Connect again"}
      send={send}
    >
      {modes.length < 2 ? null : (
        <ChoiceField
          name="mode"
          label="How"
          defaultValue={mode}
          onChoose={(value) => setMode(value as Mode)}
          choices={modes.map((one) => [one, one === "oauth2" ? "Somebody consents (OAuth)" : "With credentials"])}
        />
      )}
      {account === undefined ? (
        <TextField name="name" label="Name" maxLength={155} placeholder={`Ada at ${provider.name}`} />
      ) : null}
      {auth.self_hosted ? (
        <TextField
          name="base_url"
          label="Base URL"
          type="url"
          defaultValue={account?.base_url ?? ""}
          placeholder={auth.base_url ?? ""}
          help="Only for a server that you host yourself."
        />
      ) : null}
      {mode === "api_key" ? (
        fields.map(({ help, key, label, placeholder, required, type }) => (
          <TextField
            key={key}
            name={`credential.${key}`}
            label={label}
            type={type === "secret" ? "password" : "text"}
            required={required}
            placeholder={placeholder ?? ""}
            help={help ?? undefined}
          />
        ))
      ) : (
        <>
          <TextField
            name="client_id"
            label="Client id"
            required
            help="Register a client at the provider. Its redirect URI is the gateway's public URL with /v1/oauth/callback."
          />
          <TextField
            name="client_secret"
            label="Client secret"
            type="password"
            help="Leave it empty for a public client."
          />
          <ChoiceField
            name="token_auth_method"
            label="How the client authenticates"
            choices={[
              ["client_secret_post", "In the body (client_secret_post)"],
              ["client_secret_basic", "In a header (client_secret_basic)"]
            ]}
          />
          <TextField
            name="scopes"
            label="Scopes"
            placeholder={auth.scopes.join(" ")}
            help="Separated by spaces. Left empty: what the provider's triggers need."
          />
        </>
      )}
    </Form>
  )
}

/** The providers, and what each needs of an account. */
export const useProviders = () => {
  const { client, team } = useSession()
  return useQuery({
    queryKey: ["source providers", team],
    queryFn: () => client.get("/source-providers"),
    staleTime: Infinity
  })
}
