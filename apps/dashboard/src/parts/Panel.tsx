import type { ReactNode } from "react"

/** A titled part of a page. */
export const Panel = ({
  children,
  right,
  title
}: {
  readonly title: ReactNode
  readonly right?: ReactNode
  readonly children: ReactNode
}) => (
  <section className="panel">
    <header>
      <h2>{title}</h2>
      {right === undefined ? null : <div className="right">{right}</div>}
    </header>
    <div className="inside">{children}</div>
  </section>
)

/** Names and values, one below the other. Values that are undefined are left out. */
export const Facts = ({ of }: { readonly of: ReadonlyArray<readonly [name: string, value: ReactNode]> }) => (
  <dl className="facts">
    {of.flatMap(([name, value]) =>
      value === undefined ? [] : [<dt key={name}>{name}</dt>, <dd key={`${name} value`}>{value}</dd>]
    )}
  </dl>
)
