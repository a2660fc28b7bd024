import { useQuery } from "@tanstack/react-query"
import { Link, Outlet, useLocation, useNavigate } from "@tanstack/react-router"
import { type FormEvent, lazy, Suspense, useCallback, useEffect, useRef, useState } from "react"
import { rememberSignOut, wasSignedInAtOnce } from "./demo.ts"
import { endSession, folder } from "./gateway.ts"
import { groups } from "./menu.ts"
import { forgetBins } from "./pages/bins.ts"
import { isKnownId, placeOf } from "./pages/paths.ts"
import { isTyping } from "./parts/List.tsx"
import { Names } from "./parts/Named.tsx"
import { useRowKeys } from "./parts/RowKeys.ts"
import { Saying } from "./parts/Said.tsx"
import { useRole, useSession } from "./session.ts"

const Palette = lazy(async () => ({ default: (await import("./Palette.tsx")).Palette }))
const Keys = lazy(async () => ({ default: (await import("./Palette.tsx")).Keys }))

/** The command palette and the list of keys, each loaded when it is opened for the first time. */
const Above = () => {
  const [shown, setShown] = useState<"palette" | "keys" | null>(null)
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
        event.preventDefault()
        setShown("palette")
      } else if (event.key === "?" && !isTyping(event)) setShown("keys")
    }
    document.addEventListener("keydown", onKey)
    return () => document.removeEventListener("keydown", onKey)
  }, [])
  // A dialog reports its closing late. The other dialog may already be open then.
  const closePalette = useCallback(() => setShown((now) => (now === "palette" ? null : now)), [])
  const closeKeys = useCallback(() => setShown((now) => (now === "keys" ? null : now)), [])
  return (
    <>
      <button type="button" aria-haspopup="dialog" onClick={() => setShown("palette")}>
        Go to… <kbd>Ctrl K</kbd>
      </button>
      <Suspense fallback={null}>
        {shown === "palette" ? <Palette close={closePalette} /> : null}
        {shown === "keys" ? <Keys close={closeKeys} /> : null}
      </Suspense>
    </>
  )
}

/** Any id, pasted anywhere on the page, opens its record. */
const Find = () => {
  const { client } = useSession()
  const navigate = useNavigate()
  const field = useRef<HTMLInputElement>(null)
  const [isUnknown, setUnknown] = useState(false)
  const open = useCallback(
    async (id: string) => {
      const to = await placeOf(client, id)
      setUnknown(to === null)
      if (to !== null) await navigate({ to })
    },
    [client, navigate]
  )
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "/" || isTyping(event)) return
      event.preventDefault()
      // The current input replaces the previous search.
      field.current?.select()
    }
    const onPaste = (event: ClipboardEvent) => {
      const id = event.clipboardData?.getData("text").trim() ?? ""
      if (isKnownId(id) && !isTyping(event)) void open(id)
    }
    document.addEventListener("keydown", onKey)
    document.addEventListener("paste", onPaste)
    return () => {
      document.removeEventListener("keydown", onKey)
      document.removeEventListener("paste", onPaste)
    }
  }, [open])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void open(field.current?.value.trim() ?? "")
  }
  return (
    <form className="find" onSubmit={submit} role="search">
      <input
        ref={field}
        type="search"
        aria-label="Open by id"
        placeholder="Open by id: req_…, evt_…, src_…  (press /)"
      />
      {isUnknown ? <span role="alert">No page shows records with such an id.</span> : null}
    </form>
  )
}

const themes = ["system", "light", "dark"] as const

const Theme = () => {
  const [theme, setTheme] = useState(localStorage.getItem("theme") ?? "system")
  useEffect(() => {
    localStorage.setItem("theme", theme)
    if (theme === "system") delete document.documentElement.dataset["theme"]
    else document.documentElement.dataset["theme"] = theme
  }, [theme])
  return (
    <select aria-label="Theme" value={theme} onChange={({ target }) => setTheme(target.value)}>
      {themes.map((one) => (
        <option key={one} value={one}>
          {one.charAt(0).toUpperCase() + one.slice(1)}
        </option>
      ))}
    </select>
  )
}

/** The page of the menu to which the shown one belongs. */
const menuPage = (): string => {
  const first = `/${location.pathname.slice(folder.pathname.length).split("/", 1)[0]}`
  return groups.some(({ pages }) => pages.some(([to]) => to === first)) ? first : "/"
}

const Teams = () => {
  const { client, me, showTeam, team } = useSession()
  const navigate = useNavigate()
  const teams = useQuery({
    queryKey: ["teams"],
    queryFn: () => client.get("/teams"),
    enabled: me.user !== null,
    retry: false
  })
  const all = teams.data?.data ?? []
  if (all.length < 2) return <span className="muted">{all[0]?.name ?? team}</span>
  return (
    <select
      aria-label="Team"
      value={team}
      onChange={({ target }) => {
        showTeam(target.value)
        // The page and its filters refer to resources of the previous team.
        void navigate({ to: menuPage() })
      }}
    >
      {all.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  )
}

const signOut = async (isUser: boolean) => {
  forgetBins()
  rememberSignOut()
  await endSession(isUser)
  location.assign(folder)
}

/** Why nobody was asked who they are. */
const AtOnce = () => {
  const [isShown, setShown] = useState(wasSignedInAtOnce())
  if (!isShown) return null
  return (
    <div className="notice" role="status">
      You are signed in as the demo user, because only this machine reaches the gateway. An operator can switch that off
      with <code>TIDEGATE_DEMO_LOGIN=off</code>.{" "}
      <button type="button" className="link" onClick={() => setShown(false)}>
        Close
      </button>
    </div>
  )
}

/** What is around every page. */
export const Shell = () => {
  const { me } = useSession()
  const { isReader } = useRole()
  const pages = useRef<HTMLElement>(null)
  const { pathname } = useLocation()
  useRowKeys()
  // On a narrow screen the pages are one row: the current one is made visible.
  useEffect(() => {
    pages.current?.querySelector('[aria-current="page"]')?.scrollIntoView({ block: "nearest", inline: "center" })
  }, [pathname])
  return (
    <div className="shell">
      <a className="skip" href="#page">
        Skip to the page
      </a>
      <div className="topbar">
        <Link to="/" className="brand">
          Tidegate
        </Link>
        <Find />
        <Above />
        <div className="right">
          <Teams />
          <Theme />
          <span className="muted">
            {me.user?.name ?? me.user?.email ?? (isReader ? "Key that can only read" : "API key")}
          </span>
          <button type="button" onClick={() => void signOut(me.user !== null)}>
            Sign out
          </button>
        </div>
      </div>
      <nav className="nav" aria-label="Pages" ref={pages}>
        {groups.map(({ pages, title }) => (
          <div key={title}>
            <h2>{title}</h2>
            {pages.map(([to, label]) => (
              <Link key={to} to={to} activeOptions={{ exact: to === "/" }}>
                {label}
              </Link>
            ))}
          </div>
        ))}
      </nav>
      <main className="page" id="page">
        <Names>
          <Saying>
            <AtOnce />
            <Outlet />
          </Saying>
        </Names>
      </main>
    </div>
  )
}
