import { encode } from 'uqr'
import { security } from '../copy/security.ts'

/** A text for the camera of a phone, with the white border that readers need. */
export default function Qr({ text }: { text: string }) {
  const { data, size } = encode(text, { border: 4 })
  const squares = data.flatMap((row, y) => row.map((isBlack, x) => (isBlack ? `M${x} ${y}h1v1h-1z` : '')))
  return (
    <svg class="qr" role="img" aria-label={security.qr} viewBox={`0 0 ${size} ${size}`}>
      <path shape-rendering="crispEdges" d={squares.join('')} />
    </svg>
  )
}
