/** Our own sentences, in which `backticks` mark literal text. */
export const Words = ({ children }: { children: string }) => (
  <>{children.split('`').map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part))}</>
)
