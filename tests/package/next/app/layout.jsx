export const metadata = { title: 'Next' };

/** @param {{ children: import('react').ReactNode }} content */
export default function Layout({ children }) {
  return <html lang="en"><body>{children}</body></html>;
}
