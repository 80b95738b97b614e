import { ago, distance, fullTime, shortTime } from '../lib/time.ts'

/** How long ago, or the date; the full time on hover. */
export const Time = ({ at }: { at: string }) => (
  <time dateTime={at} title={fullTime(at)}>
    {ago(at)}
  </time>
)

/** When something was. */
export const Moment = ({ at }: { at: string }) => <time dateTime={at}>{shortTime(at)}</time>

/** When something ends: the date, with how far away it is on hover. */
export const Until = ({ at }: { at: string }) => (
  <time dateTime={at} title={`${distance(at)}, ${fullTime(at)}`}>
    {shortTime(at)}
  </time>
)
