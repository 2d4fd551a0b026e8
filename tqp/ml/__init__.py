"""Trained models as torch modules inside a query: conversion, proof against the original, and scoring."""
