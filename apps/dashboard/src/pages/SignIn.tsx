import { useQuery, useQueryClient } from "@tanstack/react-query"
import { type FormEvent, useState } from "react"
import { beginAtProvider, beginDemo, beginSession, hasProvider, messageOf } from "../gateway.ts"

/** Signing in with an API key, or with the identity provider or as the demo user where the operator allows it. */
export const SignIn = ({ failure }: { readonly failure: string | null }) => {
  const queries = useQueryClient()
  const provider = useQuery({ queryKey: ["identity provider"], queryFn: hasProvider, staleTime: Infinity })
  const [error, setError] = useState(failure)
  const [isBusy, setBusy] = useState(false)
  const attempt = async (begin: () => Promise<void>) => {
    setBusy(true)
    setError(null)
    try {
      await begin()
      // The browser is on its way to the identity provider.
      if (begin === beginAtProvider) return
      await queries.resetQueries({ queryKey: ["me"] })
    } catch (refusal) {
      setError(messageOf(refusal))
    }
    setBusy(false)
  }
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const key = new FormData(event.currentTarget).get("key")
    void attempt(() => beginSession(typeof key === "string" ? key.trim() : ""))
  }
  return (
    <main className="signin">
      <h1>Tidegate</h1>
      {provider.data === true ? (
        <button type="button" className="primary" disabled={isBusy} onClick={() => void attempt(beginAtProvider)}>
          Sign in with your organization
        </button>
      ) : null}
      <form onSubmit={submit}>
        <label htmlFor="key">API key</label>
        <input id="key" name="key" type="password" autoComplete="current-password" required />
        <p className="muted">
          The gateway prints where its key is when it starts: by default in <code>.tidegate/api-key</code>.
        </p>
        <button type="submit" className="primary" disabled={isBusy}>
          Sign in
        </button>
      </form>
      <button type="button" disabled={isBusy} onClick={() => void attempt(beginDemo)}>
        Look around as the demo user
      </button>
      {error === null ? null : (
        <p role="alert" className="notice bad">
          {error}
        </p>
      )}
    </main>
  )
}
