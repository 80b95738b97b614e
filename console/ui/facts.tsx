import type { ComponentChildren } from 'preact'

type Fact = readonly [string, ComponentChildren]

/** Names and values of one record. */
export const Facts = ({ of }: { of: readonly (Fact | false | null | undefined | '')[] }) => (
  <dl class="facts">
    {of.map((one) => one && [<dt key={one[0]}>{one[0]}</dt>, <dd key={`${one[0]} value`}>{one[1]}</dd>])}
  </dl>
)
