'use client';

// The server imports the package too, when it renders this page; only the browser starts the engine.
import { startEngine } from 'octet-onnx';
import { useEffect, useState } from 'react';

export default function Page() {
  const [said, say] = useState('The engine starts.');
  useEffect(() => {
    startEngine()
      .then(({ threads }) => say(`${threads} threads`))
      .then(() => import('./ten-lines.js'))
      .catch((error) => console.error(error));
  }, []);
  return <output>{said}</output>;
}
