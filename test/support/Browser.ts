/** A user's browser at an `oidc-provider`: it keeps cookies, signs in and consents. */
export class Browser {
  readonly #cookies = new Map<string, string>()

  async call(url: string, form?: Record<string, string>): Promise<Response> {
    const answer = await fetch(url, {
      method: form === undefined ? "GET" : "POST",
      redirect: "manual",
      headers: { cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
      ...(form === undefined ? {} : { body: new URLSearchParams(form) })
    })
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      if (value === "") this.#cookies.delete(name)
      else this.#cookies.set(name, value)
    }
    return answer
  }

  /**
   * Follows `url` within `issuer`, signs in as `login` and consents. Returns the first URL outside of `issuer`, without calling
   * it.
   */
  async consent(issuer: string, url: string, login: string): Promise<URL> {
    let at = url
    for (let steps = 0; at.startsWith(issuer); steps++) {
      if (steps > 12) throw new Error(`the provider leads nowhere: ${at}`)
      let answer = await this.call(at)
      if (answer.status === 200) {
        const prompt = /name="prompt" value="(\w+)"/.exec(await answer.text())?.[1] ?? ""
        answer = await this.call(at, { prompt, login, password: "any" })
      }
      const location = answer.headers.get("location")
      if (location === null) throw new Error(`the provider answers ${answer.status}`)
      at = new URL(location, at).href
    }
    return new URL(at)
  }
}
