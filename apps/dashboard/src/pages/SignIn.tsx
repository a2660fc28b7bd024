import { useQuery, useQueryClient } from "@tanstack/react-query"
import { type FormEvent, useEffect, useState } from "react"
import { signInAtOnce, signsInAtOnce } from "../demo.ts"
import { beginAtProvider, beginDemo, beginSession, messageOf, waysToSignIn } from "../gateway.ts"
import { Loading } from "../parts/States.tsx"

/** Signing in with an API key, or with the identity provider or as the demo user where the operator allows it. */
export const SignIn = ({ failure }: { readonly failure: string | null }) => {
  const queries = useQueryClient()
  const { data: ways, isPending } = useQuery({
    queryKey: ["ways to sign in"],
    queryFn: waysToSignIn,
    staleTime: Infinity
  })
  const [error, setError] = useState(failure)
  const [isBusy, setBusy] = useState(false)
  const [isAtOnce, setAtOnce] = useState(failure === null && signsInAtOnce())
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
  const offersDemo = ways?.demo === true
  // If there is an identity provider, people should sign in as themselves, and not as the demo user.
  const begins = isAtOnce && offersDemo && !ways.identity_provider
  useEffect(() => {
    if (begins) void attempt(signInAtOnce).then(() => setAtOnce(false))
    // Once: a second try would hide why the first one has failed.
  }, [begins])
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const key = new FormData(event.currentTarget).get("key")
    void attempt(() => beginSession(typeof key === "string" ? key.trim() : ""))
  }
  if (isAtOnce && (isPending || begins)) return <Loading />
  return (
    <main className="signin">
      <h1>Tidegate</h1>
      {ways?.identity_provider === true ? (
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
      {offersDemo ? (
        <button type="button" disabled={isBusy} onClick={() => void attempt(beginDemo)}>
          Look around as the demo user
        </button>
      ) : null}
      {error === null ? null : (
        <p role="alert" className="notice bad">
          {error}
        </p>
      )}
    </main>
  )
}
