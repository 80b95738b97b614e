import type { ComponentChildren } from 'preact'

/** Names and values of one record. */
export const Facts = ({ of }: { of: readonly (readonly [string, ComponentChildren] | false | null)[] }) => (
  <dl class="facts">
    {of.map((one) => one && [<dt key={one[0]}>{one[0]}</dt>, <dd key={`${one[0]} value`}>{one[1]}</dd>])}
  </dl>
)
