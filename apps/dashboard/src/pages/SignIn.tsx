import { useQueryClient } from "@tanstack/react-query"
import { type FormEvent, useState } from "react"
import { beginDemo, beginSession, messageOf } from "../gateway.ts"

/** Signing in with an API key, or as the demo user where the operator allows it. */
export const SignIn = () => {
  const queries = useQueryClient()
  const [error, setError] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const attempt = async (begin: () => Promise<void>) => {
    setBusy(true)
    setError(null)
    try {
      await begin()
      await queries.resetQueries({ queryKey: ["me"] })
    } catch (failure) {
      setError(messageOf(failure))
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
